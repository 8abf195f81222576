"use strict";
(function () {
  var said = document.getElementById("copied");
  function tell(button, done) {
    said.textContent = "";
    said.textContent = said.getAttribute(done ? "data-done" : "data-failed");
    button.classList.toggle("done", done);
    setTimeout(function () { button.classList.remove("done"); }, 2000);
  }
  function byHand(text) {
    var area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.appendChild(area);
    area.select();
    var done = false;
    try { done = document.execCommand("copy"); } catch (error) { done = false; }
    area.remove();
    return done;
  }
  document.querySelectorAll("button.copy").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      var text = button.parentNode.querySelector(".new").textContent;
      if (navigator.clipboard && navigator.clipboard.writeText) {
        navigator.clipboard.writeText(text).then(
          function () { tell(button, true); },
          function () { tell(button, byHand(text)); button.focus(); }
        );
      } else {
        tell(button, byHand(text));
        button.focus();
      }
    });
  });
  var shut = [];
  window.addEventListener("beforeprint", function () {
    shut = Array.prototype.slice.call(document.querySelectorAll("details:not([open])"));
    shut.forEach(function (part) { part.open = true; });
  });
  window.addEventListener("afterprint", function () {
    shut.forEach(function (part) { part.open = false; });
  });
})();
