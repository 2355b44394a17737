// What pages gain where there is a script; every page reads and works without it.
"use strict";

for (const slider of document.querySelectorAll("input[type=range][data-shows]")) {
  const shown = document.getElementById(slider.dataset.shows);
  const steps = slider.list ? slider.list.options : [];
  const show = () => {
    const step = steps[Number(slider.value)];
    if (step) {
      shown.textContent = step.label;
      slider.setAttribute("aria-valuetext", step.label);
    }
  };
  slider.addEventListener("input", show);
  slider.addEventListener("change", () => slider.form.requestSubmit());
}

for (const area of document.querySelectorAll("textarea[data-sends]")) {
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      area.form.requestSubmit();
    }
  });
}
