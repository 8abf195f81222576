"""Follow a live training folder: say when a run has failed, and write a report beside it, once.

`state` decides, over what is seen of a run from outside (no files, no clock); `look` sees; `judge` analyses; `keeper`
keeps the reports true (`stamp`, `files`); `memory` remembers what was settled; `hook` tells other programs; `watcher`
is the loop.
"""
