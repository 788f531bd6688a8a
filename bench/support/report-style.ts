/** How a report looks: the reader's colour scheme and font, wide enough for plots, narrow enough for phones. */

/** Lines and marks have a contrast of 3 to 1 at least, text 4.5 to 1. */
export const REPORT_STYLE = `
:root {
  color-scheme: light dark;
  --page: #fff; --text: #1c1f23; --quiet: #565c64; --grid: #d4d8dd; --bar: #3f78c9; --whisker: #10243f;
  --s0: #1f6fd0; --s1: #b5490b; --s2: #1b7a3d; --s3: #8a3fb8; --s4: #a1273f; --s5: #0f7480;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15181c; --text: #e6e9ed; --quiet: #a6adb6; --grid: #3a4048; --bar: #4b7fc6; --whisker: #f2f6fc;
    --s0: #6aa9f7; --s1: #f0a15c; --s2: #66c98a; --s3: #c795ee; --s4: #f28b9d; --s5: #57c5d1;
  }
}
body { margin: 0; background: var(--page); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; }
figure { margin: 2rem 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
th, td { padding: .25rem .75rem .25rem 0; border-bottom: 1px solid var(--grid); vertical-align: top; }
th { font-weight: 400; }
thead th { color: var(--quiet); white-space: nowrap; }
.left { text-align: left; }
.right { text-align: right; white-space: nowrap; }
details { margin-top: .5rem; }
summary { color: var(--quiet); cursor: pointer; padding: .25rem 0; }
svg { display: block; width: 100%; max-width: 40rem; height: auto; }
svg text { font: 14px system-ui, sans-serif; fill: var(--text); }
svg .group text { font-weight: 600; }
.grid { stroke: var(--grid); stroke-width: 1; }
.bar { fill: var(--bar); }
.whisker { stroke: var(--whisker); stroke-width: 2; }
.path { fill: none; stroke-width: 2; }
.range { stroke-width: 1.5; opacity: .7; }
.series { stroke: var(--line); }
.mark { fill: var(--line); stroke: none; }
.s0 { --line: var(--s0); } .s1 { --line: var(--s1); } .s2 { --line: var(--s2); }
.s3 { --line: var(--s3); } .s4 { --line: var(--s4); } .s5 { --line: var(--s5); }
.s1 .path { stroke-dasharray: 7 4; } .s2 .path { stroke-dasharray: 2 3; } .s3 .path { stroke-dasharray: 10 3 2 3; }
.s4 .path { stroke-dasharray: 4 2; } .s5 .path { stroke-dasharray: 12 5; }
`.trim()
