// SPDX-License-Identifier: MIT

// skynet: as the published program does it: every goroutine starts ten and adds up what they send on one channel.
package main

import peer "libums/bench/common/go"

const fanOut = 10

func skynet(result chan<- int, first, leaves int) {
	if leaves == 1 {
		result <- first
		return
	}
	share := leaves / fanOut
	sums := make(chan int)
	for i := 0; i < fanOut; i++ {
		go skynet(sums, first+i*share, share)
	}
	sum := 0
	for i := 0; i < fanOut; i++ {
		sum += <-sums
	}
	result <- sum
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	leaves := in.Number("fibers", 1_000_000, 1, peer.Most)
	in.Done()

	begin := peer.NowNs()
	result := make(chan int)
	go skynet(result, 0, leaves)
	sum := <-result
	ns := peer.NowNs() - begin
	if sum != leaves*(leaves-1)/2 {
		peer.Fail("wrong sum %d", sum)
	}
	var out peer.Line
	out.Tally(peer.Tally{Ops: int64(leaves), Ns: ns}).Add("total_ns", ns)
	out.Add("peak_rss_bytes", peer.StatusBytes("VmHWM")).Print()
}
