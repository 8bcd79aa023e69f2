// SPDX-License-Identifier: MIT
// Draws every chart of the page, and draws them again when the reader switches between light and dark.
"use strict";

// One colour per runtime on the whole page; distinguishable for the colour-blind, on light and on dark.
const colours = {
    "ums": "#2f7de1",
    "ums fair": "#56b4e9",
    "ums one": "#56b4e9",
    "ums elsewhere": "#e69f00",
    "ums adopted": "#009e73",
    "ums dispatch": "#56b4e9",
    "ums scope": "#009e73",
    "ums scope dispatch": "#66c2a5",
    "ums spawn": "#7b5ea7",
    "ums spawn dispatch": "#b3a2d0",
    "ums fork_join": "#e69f00",
    "ums global_fifo": "#56b4e9",
    "ums local_locked": "#009e73",
    "ums local_mpsc": "#7b5ea7",
    "ums local_mpsc_intrusive": "#c2528b",
    "ums priority": "#d55e00",
    "ums earliest_deadline_first": "#e69f00",
    "ums fair_share": "#8c2d5a",
    "ums-worker": "#7b5ea7",
    "boost.fiber": "#e08214",
    "boost.fiber static": "#b8860b",
    "boost.fiber shared_work": "#fdb863",
    "boost.fiber static shared_work": "#d8b365",
    "std::thread": "#8a939c",
    "std::async": "#8a939c",
    "serial": "#c2528b",
    "openmp": "#e69f00",
    "tbb": "#d55e00",
    "go": "#1b9e77",
    "bare switch": "#c2528b",
    "bare stack": "#c2528b",
    "epoll": "#c2528b",
    "epoll_parser": "#8c2d5a",
    "io_uring": "#7b5ea7",
    "nginx": "#009639",
    "fasthttp": "#1b9e77",
    "node": "#a6761d",
    "memcached": "#666666",
};
const others = ["#7b5ea7", "#a6761d", "#666666"];

function colourOf(runtime, index) {
    return colours[runtime] || others[index % others.length];
}

function digits(value) {
    if (value >= 1e6 && value % 1e6 === 0) return value / 1e6 + "M";
    return value >= 999.5 ? Math.round(value).toLocaleString("en") : String(Number(value.toPrecision(3)));
}

// Only the powers of ten: a logarithmic axis otherwise writes its labels over each other.
function decades(value) {
    const exponent = Math.log10(value);
    return Math.abs(exponent - Math.round(exponent)) < 1e-9 ? digits(value) : "";
}

function tooltip(context) {
    const point = context.raw;
    const spread = point.low === point.high ? "" : ` (${digits(point.low)} to ${digits(point.high)})`;
    return `${context.dataset.label}: ${digits(point.y)}${spread}`;
}

function configuration(chart, style) {
    const isLines = chart.kind === "lines";
    const ink = style.getPropertyValue("--soft").trim();
    const isNarrow = matchMedia("(max-width: 48rem)").matches;
    const axis = {
        grid: { color: style.getPropertyValue("--line").trim() },
        // Upright where there is little room: a label under each group.
        ticks: { color: ink, maxRotation: isNarrow ? 90 : 45 },
    };
    const titled = (text) => ({ display: text !== "", text, color: ink });
    const bottom = chart.series.flatMap((one) => one.points.map((point) => point.y));
    return {
        type: isLines ? "line" : "bar",
        data: {
            labels: isLines ? undefined : chart.labels,
            datasets: chart.series.map((one, index) => ({
                label: one.runtime,
                data: one.points.map((point) => (isLines ? point : { ...point, x: chart.labels[point.x] })),
                backgroundColor: colourOf(one.runtime, index),
                borderColor: colourOf(one.runtime, index),
                borderWidth: isLines ? 2 : 0,
                borderDash: one.runtime === "bare switch" ? [6, 4] : [],
                maxBarThickness: 48,
            })),
        },
        options: {
            animation: false,
            maintainAspectRatio: false,
            interaction: { mode: "index", intersect: false },
            plugins: {
                legend: { labels: { color: ink, boxHeight: 8, usePointStyle: true } },
                tooltip: { callbacks: { label: tooltip } },
            },
            scales: {
                x: {
                    ...axis,
                    type: isLines ? "logarithmic" : "category",
                    title: titled(chart.x),
                    ticks: isLines ? { ...axis.ticks, callback: decades } : axis.ticks,
                },
                y: {
                    ...axis,
                    type: chart.log ? "logarithmic" : "linear",
                    title: titled(chart.y),
                    // A bar needs a foot: a power of ten below the smallest.
                    min: chart.log ? 10 ** Math.floor(Math.log10(Math.min(...bottom) * 0.99)) : 0,
                    ticks: chart.log ? { ...axis.ticks, callback: decades } : axis.ticks,
                },
            },
        },
    };
}

const data = JSON.parse(document.getElementById("charts").textContent);
let drawn = [];

function draw() {
    drawn.forEach((chart) => chart.destroy());
    const style = getComputedStyle(document.documentElement);
    drawn = data.map((chart, index) => new Chart(`chart${index}`, configuration(chart, style)));
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
