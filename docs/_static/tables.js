// Tables of more than thirty rows can be sorted by a click on a heading and filtered by words; without script they are plain tables.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const body = table.tBodies[0];
    if (!body || body.rows.length <= 30) continue;
    const rows = Array.from(body.rows);
    const filter = document.createElement("input");
    filter.type = "search";
    filter.className = "filter";
    filter.placeholder = "Filter";
    filter.setAttribute("aria-label", "Filter the table");
    filter.addEventListener("input", () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    table.parentNode.insertBefore(filter, table);
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      let direction = -1;
      head.classList.add("sorts");
      head.tabIndex = 0;
      const sort = () => {
        direction = -direction;
        const key = (row) => row.cells[column].textContent.trim();
        rows.sort((a, b) => direction * key(a).localeCompare(key(b), undefined, { numeric: true }));
        body.append(...rows);
      };
      head.addEventListener("click", sort);
      head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
    });
  }
});
