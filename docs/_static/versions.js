// The version of a page becomes a choice where other versions lie beside this one; pages that stand alone keep the words.
document.addEventListener("DOMContentLoaded", async () => {
  const place = document.querySelector(".versions");
  if (!place || location.protocol === "file:") return;
  const root = new URL(place.dataset.root, location.href), page = location.href.slice(root.href.length);
  const found = await fetch(new URL("../versions.json", root)).then((answer) => (answer.ok ? answer.json() : []), () => []);
  if (found.length < 2) return;
  const choice = document.createElement("select"), here = root.pathname.split("/").at(-2);
  choice.setAttribute("aria-label", "Version of these pages");
  for (const { folder, title } of found) choice.add(new Option(title, folder, false, folder === here));
  choice.addEventListener("change", async () => {
    const there = new URL(`../${choice.value}/`, root), same = new URL(page, there);
    const has = await fetch(same, { method: "HEAD" }).then((answer) => answer.ok, () => false);
    location.href = has ? same : new URL("index.html", there);
  });
  place.replaceChildren(choice);
});
