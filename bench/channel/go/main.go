// SPDX-License-Identifier: MIT

// channel: chan, without places and with 64; Go has none without a bound. The workload is that of
// bench/channel/traffic.hpp.
package main

import (
	"sync/atomic"

	peer "libums/bench/common/go"
)

const (
	trips  = 10_000
	items  = 100_000
	places = 64
)

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

func stream(pairs int) peer.Tally {
	each := items / pairs
	channel := make(chan int, places)
	sending := int64(pairs)
	received := int64(0)
	ns := peer.RunCrew(2*pairs, func(i int) {
		if i < pairs {
			for n := 0; n < each; n++ {
				channel <- 1
			}
			if atomic.AddInt64(&sending, -1) == 0 {
				close(channel)
			}
			return
		}
		sum := int64(0)
		for item := range channel {
			sum += int64(item)
		}
		atomic.AddInt64(&received, sum)
	})
	if received != int64(each*pairs) {
		peer.Fail("items were lost")
	}
	return peer.Tally{Ops: int64(each * pairs), Ns: ns}
}

func main() {
	in := peer.Arguments()
	way := in.Word("way", "unbuffered", "buffered")
	in.Number("processors", 1, 1, 1024)
	most := peer.Most
	if way == "unbuffered" {
		most = 2
	}
	goroutines := in.Number("fibers", 2, 2, most)
	minMs := in.Number("min_ms", 100, 0, peer.Most)
	in.Done()
	if goroutines%2 != 0 {
		peer.Fail("fibers: expected as many senders as receivers")
	}

	var out peer.Line
	if way == "unbuffered" {
		out.Tally(peer.Repeat(minMs, rally)).Print()
		return
	}
	out.Tally(peer.Repeat(minMs, func() peer.Tally { return stream(goroutines / 2) })).Print()
}
