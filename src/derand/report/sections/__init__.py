"""The sections of a report, one module each: its types, `compute` (inputs -> a part of the report's dict), `blocks`.

`blocks` turns the dict into what the section says, declared once for all outputs; `derand.report._blocks` writes it.
`derand.report._page` lists the sections in their order. Sections read what they need of the dict: their `Parts` names
it.
"""
