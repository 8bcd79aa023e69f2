// SPDX-License-Identifier: MIT

// echo: a goroutine for each connection.
package main

import (
	"fmt"
	"net"
	"os"
)

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func serve(connection net.Conn) {
	defer connection.Close()
	buffer := make([]byte, 1024)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if _, err := connection.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fail(err)
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	for {
		connection, err := listener.Accept()
		if err != nil {
			fail(err)
		}
		go serve(connection)
	}
}
