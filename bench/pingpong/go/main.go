// SPDX-License-Identifier: MIT

// pingpong: two goroutines pass a token through two unbuffered channels. One operation is a round trip.
package main

import peer "libums/bench/common/go"

const trips = 10_000

func rally() peer.Tally {
	there := make(chan int)
	back := make(chan int)
	go func() {
		for token := range there {
			back <- token
		}
	}()
	begin := peer.NowNs()
	for i := 0; i < trips; i++ {
		there <- i
		<-back
	}
	ns := peer.NowNs() - begin
	close(there)
	return peer.Tally{Ops: trips, Ns: ns}
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	in.Number("fibers", 2, 2, 2)
	minMs := in.Number("min_ms", 100, 0, peer.Most)
	in.Done()

	var out peer.Line
	out.Tally(peer.Repeat(minMs, rally)).Print()
}
