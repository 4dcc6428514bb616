// A button on every block of code. It copies what a reader would type: without prompts, and without the output.
function typed(text) {
  const prompts = /^(>>> |\.\.\. |>>>$|\.\.\.$|\$ )/;
  const lines = text.replace(/\n$/, "").split("\n");
  if (!lines.some((line) => prompts.test(line) && line !== "...")) return lines.join("\n");
  const kept = [];
  let continued = false;
  for (const line of lines) {
    if (continued || (prompts.test(line) && line !== "...")) {
      kept.push(continued ? line : line.replace(prompts, ""));
      continued = line.endsWith("\\");
    }
  }
  return kept.join("\n");
}

document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.highlight > pre")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(typed(block.textContent));
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.parentElement.append(button);
  }
});
