// SPDX-License-Identifier: MIT

// http: fasthttp, with its defaults.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/valyala/fasthttp"
)

var body = []byte("Hello, World!")

func answer(context *fasthttp.RequestCtx) {
	context.SetContentType("text/plain")
	context.SetBody(body)
}

func main() {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err == nil {
		fmt.Printf("listening on %s\n", listener.Addr())
		err = fasthttp.Serve(listener, answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
