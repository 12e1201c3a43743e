// Pictures of bodies for the view through the eyes; a column of theirs is drawn for each ray.

const WIDTH = 64, HEIGHT = 116;
let kept = null; // {key, pictures}

/** The pictures {enemy, home, bystander, down} in these colours. */
export function sprites(colours) {
  const key = `${colours.enemy}${colours.agent}${colours.bystander}${colours.down}`;
  if (kept?.key !== key) {
    kept = {
      key,
      pictures: {
        enemy: standing(colours.enemy),
        home: standing(colours.agent),
        bystander: standing(colours.bystander),
        down: lying(colours.down),
      },
    };
  }
  return kept.pictures;
}

function sheet() {
  const canvas = document.createElement("canvas");
  canvas.width = WIDTH;
  canvas.height = HEIGHT;
  return canvas;
}

function standing(colour) {
  const canvas = sheet(), ink = canvas.getContext("2d");
  ink.fillStyle = colour;
  ink.fillRect(0, 30, WIDTH, 52); // as wide as the disc that rays meet
  ink.fillRect(10, 82, 18, 34);
  ink.fillRect(36, 82, 18, 34);
  ink.beginPath();
  ink.arc(32, 17, 16, 0, 2 * Math.PI);
  ink.fill();
  ink.fillStyle = "#0006";
  ink.fillRect(0, 30, 9, 52);
  ink.fillRect(55, 30, 9, 52);
  ink.fillStyle = "#fff";
  ink.fillRect(22, 11, 8, 6);
  ink.fillRect(35, 11, 8, 6);
  ink.fillStyle = "#000";
  ink.fillRect(25, 12, 4, 5);
  ink.fillRect(37, 12, 4, 5);
  ink.fillRect(24, 23, 17, 3);
  ink.fillStyle = "#0009";
  ink.fillRect(18, 48, 28, 8);
  return canvas;
}

function lying(colour) {
  const canvas = sheet(), ink = canvas.getContext("2d");
  ink.fillStyle = colour;
  ink.beginPath();
  ink.ellipse(32, 109, 31, 7, 0, 0, 2 * Math.PI);
  ink.fill();
  return canvas;
}
