// SPDX-License-Identifier: MIT
// http: Node, one process. It runs what node.js's own documentation shows, with a response of known length.
"use strict";

const http = require("http");

const body = "Hello, World!";
const headers = { "Content-Length": body.length, "Content-Type": "text/plain" };
const server = http.createServer((request, response) => {
    response.writeHead(200, headers);
    response.end(body);
});
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.headersTimeout = 0;
server.maxRequestsPerSocket = 0;
server.listen({ host: "127.0.0.1", port: 0, backlog: 4096 }, () => {
    console.log(`listening on 127.0.0.1:${server.address().port}`);
});
