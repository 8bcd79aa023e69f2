// SPDX-License-Identifier: MIT

// Each file between two symbols. The folder of the page and the place of Chart.js are given to the
// assembler (-I), so that no path of the build machine is written here.

        .section .rodata

        .macro asset name, file
        .globl ums_asset_\name
        .globl ums_asset_\name\()_end
ums_asset_\name:
        .incbin "\file"
ums_asset_\name\()_end:
        .endm

        asset page, "page.html"
        asset style, "page.css"
        asset script, "page.js"
        asset chart, "chart.min.js"

        .section .note.GNU-stack, "", @progbits
