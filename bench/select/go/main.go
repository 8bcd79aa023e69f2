// SPDX-License-Identifier: MIT

// select: the statement, over 2 and 8 channels. The workload is that of bench/select/fan_in.hpp.
package main

import peer "libums/bench/common/go"

const (
	items  = 40_000
	places = 64
)

func receive2(c []chan int, n int) (sum int) {
	for i := 0; i < n; i++ {
		select {
		case item := <-c[0]:
			sum += item
		case item := <-c[1]:
			sum += item
		}
	}
	return sum
}

func receive8(c []chan int, n int) (sum int) {
	for i := 0; i < n; i++ {
		select {
		case item := <-c[0]:
			sum += item
		case item := <-c[1]:
			sum += item
		case item := <-c[2]:
			sum += item
		case item := <-c[3]:
			sum += item
		case item := <-c[4]:
			sum += item
		case item := <-c[5]:
			sum += item
		case item := <-c[6]:
			sum += item
		case item := <-c[7]:
			sum += item
		}
	}
	return sum
}

func fanIn(channels, placesEach int) peer.Tally {
	each := items / channels
	inputs := make([]chan int, channels)
	for i := range inputs {
		inputs[i] = make(chan int, placesEach)
	}
	receive := receive2
	if channels == 8 {
		receive = receive8
	}
	sum := 0
	ns := peer.RunCrew(channels+1, func(i int) {
		if i == channels {
			sum = receive(inputs, channels*each)
			return
		}
		for n := 0; n < each; n++ {
			inputs[i] <- 1
		}
	})
	if sum != channels*each {
		peer.Fail("items were lost")
	}
	return peer.Tally{Ops: int64(sum), Ns: ns}
}

func main() {
	in := peer.Arguments()
	placesEach := 0
	if in.Word("way", "unbuffered", "buffered") == "buffered" {
		placesEach = places
	}
	in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 3, 3, 9)
	minMs := in.Number("min_ms", 100, 0, peer.Most)
	in.Done()
	if goroutines != 3 && goroutines != 9 {
		peer.Fail("fibers: expected 3 or 9, the receiver and a sender for each channel")
	}

	var out peer.Line
	out.Tally(peer.Repeat(minMs, func() peer.Tally { return fanIn(goroutines-1, placesEach) })).Print()
}
