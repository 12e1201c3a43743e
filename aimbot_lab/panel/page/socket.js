// The connection to the server: questions with answers, and what the server tells of itself.

import { withToken } from "./token.js";

const VERSION = 1;
const PAUSES = [300, 700, 1500, 3000]; // ms before the next try
const TOO_MANY = 4029;
const REFUSED = 403;

export class Socket {
  constructor(onState) {
    this.onState = onState; // called with "open", "offline", "stranger" or "full" and a reason
    this.isOpen = false;
    this.number = 0;
    this.tries = 0;
    this.waiting = new Map(); // id -> {resolve, reject}
    this.listeners = new Map(); // "part/kind" -> Set of functions
    this.openers = new Set(); // called at each connection
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss://" : "ws://";
    const socket = new WebSocket(scheme + location.host + withToken("/socket"));
    this.socket = socket;
    socket.onopen = () => {
      this.isOpen = true;
      this.tries = 0;
      this.onState("open", "");
      for (const open of [...this.openers]) open();
    };
    socket.onmessage = (event) => this.take(JSON.parse(event.data));
    socket.onclose = (event) => this.lost(event);
  }

  async lost(event) {
    const wasOpen = this.isOpen;
    this.isOpen = false;
    for (const { reject } of this.waiting.values()) reject(new Error("the panel is offline"));
    this.waiting.clear();
    if (event.code === TOO_MANY) this.onState("full", event.reason);
    else this.onState(!wasOpen && await isRefused() ? "stranger" : "offline", "");
    setTimeout(() => this.connect(), PAUSES[Math.min(this.tries, PAUSES.length - 1)]);
    this.tries += 1;
  }

  take(message) {
    const { part, kind, body, reply } = message;
    if (message.v !== VERSION) {
      this.onState("other", "the panel is of another version: load the page again");
      return;
    }
    if (reply !== undefined) {
      const asked = this.waiting.get(reply);
      this.waiting.delete(reply);
      if (kind === "error") asked?.reject(new Error(body.message));
      else asked?.resolve(body);
      return;
    }
    for (const listen of this.listeners.get(`${part}/${kind}`) ?? []) listen(body);
  }

  /** The answer's body; rejects with the server's reason where it refuses. */
  ask(part, kind, body = {}) {
    if (!this.isOpen) return Promise.reject(new Error("the panel is offline"));
    this.number += 1;
    const id = this.number;
    this.socket.send(JSON.stringify({ v: VERSION, id, part, kind, body }));
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  /** Has `listen` called with each body of that kind; returns what ends it. */
  on(part, kind, listen) {
    const key = `${part}/${kind}`;
    if (!this.listeners.has(key)) this.listeners.set(key, new Set());
    this.listeners.get(key).add(listen);
    return () => this.listeners.get(key).delete(listen);
  }

  /** Calls `open` now if connected, and at each connection from now on; returns what ends it. */
  whenOpen(open) {
    this.openers.add(open);
    if (this.isOpen) open();
    return () => this.openers.delete(open);
  }
}

/** Whether the panel is there and knows this page's token no more: no socket says so. */
async function isRefused() {
  const answer = await fetch(withToken("/"), { method: "HEAD" }).catch(() => null);
  return answer?.status === REFUSED;
}
