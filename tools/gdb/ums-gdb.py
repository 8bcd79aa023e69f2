# SPDX-License-Identifier: MIT
"""What gdb has to know of libums: the signal that stops a fiber is no reason to halt.

Beside libums.so, under the name by which gdb loads it by itself (in Python: ldconfig complains of other files there)."""
import gdb

# The highest real-time signal that nobody uses, unless the program or UMS_SIGNAL says otherwise.
gdb.execute("handle SIG63 nostop noprint pass", to_string=True)
