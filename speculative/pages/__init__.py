"""The pages live.html, explore.html and trace.html, and what serves them. Their colours: trace/colours.py."""

import re


def linked(page, there):
    """The text of a page in which a name with `data-site` links to the page it names, if that is one of `there`."""
    found = re.compile(r'<span data-site="([^"]+)">(.*?)</span>')
    return found.sub(lambda match: f'<a href="{match[1]}">{match[2]}</a>' if match[1] in there else match[2], page)
