// The token that lets this page in. It comes once in the address, and is kept for reloads and other
// tabs in the storage of this origin, which no other port of this machine is shown (as a cookie is).

const NAME = "token";
const given = new URLSearchParams(location.search).get(NAME);
let here = given ?? ""; // where a browser keeps nothing

if (given !== null) {
  try {
    localStorage.setItem(NAME, given);
    history.replaceState(null, "", location.pathname + location.hash);
  } catch { /* the address keeps it */ }
}

/** `path` with the newest token: another tab may have been opened by a panel that began anew. */
export function withToken(path) {
  try {
    here = localStorage.getItem(NAME) ?? here;
  } catch { /* it is still here */ }
  return `${path}?${NAME}=${encodeURIComponent(here)}`;
}
