// The page works without this file: it saves a click and a key.
"use strict";
const trial = document.getElementById("trial");
if (trial) {
  const slider = trial.querySelector("input[type=range]");
  const value = trial.querySelector("output");
  const remembered = "ndd-trial";
  slider.addEventListener("input", () => {
    value.textContent = Number(slider.value).toFixed(2);
    slider.removeAttribute("aria-valuetext");
  });
  slider.addEventListener("change", () => {
    sessionStorage.setItem(remembered, "yes");
    trial.requestSubmit();
  });
  if (sessionStorage.getItem(remembered)) {
    sessionStorage.removeItem(remembered);
    slider.focus({ preventScroll: true });
  }
}
document.addEventListener("keydown", (event) => {
  const box = document.getElementById("q");
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) && event.target.type !== "range";
  if (event.key === "/" && box && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    box.select();
  }
});
