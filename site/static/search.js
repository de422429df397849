// Looks for words in the headings of all pages. The list is fetched when it is first needed.
const home = document.getElementById('home');
const query = document.getElementById('query');
const found = document.getElementById('found');
let headings;

async function search() {
  headings ??= fetch(new URL('index.json', home.href)).then((answer) => answer.json());
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = (await headings)
    .filter((h) => words.length > 0 && words.every((word) => `${h.page} ${h.heading}`.toLowerCase().includes(word)))
    .slice(0, 20);
  found.replaceChildren(...matches.map((h) => {
    const link = document.createElement('a');
    link.href = new URL(h.url, home.href);
    link.textContent = h.page === h.heading ? h.page : `${h.page}: ${h.heading}`;
    const item = document.createElement('li');
    item.append(link);
    return item;
  }));
  found.hidden = matches.length === 0;
}

query.addEventListener('input', search);
