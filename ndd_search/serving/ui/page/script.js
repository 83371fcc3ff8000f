// The page works without this file: it saves a click and a key, and writes dates as the reader does.
"use strict";
for (const time of document.querySelectorAll("time")) {
  const day = { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" };
  const styles = { 7: { month: "long", year: "numeric", timeZone: "UTC" }, 10: day };
  const style = styles[time.dateTime.length] ?? { dateStyle: "medium", timeStyle: "short" };
  time.textContent = new Intl.DateTimeFormat(undefined, style).format(new Date(time.dateTime));
}
const bar = document.getElementById("bar");
if (bar) {
  const slider = bar.querySelector("input[type=range]");
  const value = bar.querySelector("output");
  const remembered = "ndd-bar";
  slider.addEventListener("input", () => {
    value.textContent = Number(slider.value).toFixed(2);
    slider.removeAttribute("aria-valuetext");
  });
  slider.addEventListener("change", () => {
    sessionStorage.setItem(remembered, "yes");
    bar.requestSubmit();
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
