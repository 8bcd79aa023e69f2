// SPDX-License-Identifier: MIT

// The page of the flame graph. Its folder is given to the assembler (-I), so that no path of the
// build machine is written here.

        .section .rodata
        .globl ums_asset_flame
        .globl ums_asset_flame_end
ums_asset_flame:
        .incbin "flame.html"
ums_asset_flame_end:

        .section .note.GNU-stack, "", @progbits
