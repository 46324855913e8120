"""The dashboard: pages in the browser over run folders, and the playground.

What belongs here serves pages and JSON to a browser. It reads run folders and writes none; every
conclusion comes from `diagnosis`, every curve from `record`.

- `access`: who may ask (Host, Origin, token) and the headers of every answer.
- `library`: the runs in the folders that were given, and their checkups, cached.
- `documents`: what the pages show of a run, as JSON. `commands`: the next experiment.
- `pages`: the HTML of pages, and of rules.
- `server`: from a request to an answer.
- `notebook`: `holter.show(run)`.
- `playground/`: the gallery, networks that are trained on request, schedules, the diagnosis tree.
"""
