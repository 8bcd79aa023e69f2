// SPDX-License-Identifier: MIT

// spawn: way=one starts a goroutine and waits for its end, again and again; way=batch starts N, then waits for all.
package main

import (
	"sync"

	peer "libums/bench/common/go"
)

func one(times int) peer.Tally {
	var child sync.WaitGroup
	begin := peer.NowNs()
	for i := 0; i < times; i++ {
		child.Add(1)
		go func() { child.Done() }()
		child.Wait()
	}
	return peer.Tally{Ops: int64(times), Ns: peer.NowNs() - begin}
}

func batch(goroutines int) peer.Tally {
	var children sync.WaitGroup
	begin := peer.NowNs()
	for i := 0; i < goroutines; i++ {
		children.Add(1)
		go func() { children.Done() }()
	}
	children.Wait()
	return peer.Tally{Ops: int64(goroutines), Ns: peer.NowNs() - begin}
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 1000, 1, peer.Most)
	minMs := in.Number("min_ms", 100, 0, peer.Most)
	inBatch := in.Word("way", "one", "batch") == "batch"
	in.Done()

	round := func() peer.Tally {
		if inBatch {
			return batch(goroutines)
		}
		return one(1000)
	}
	round() // Not measured: the first stacks come from the kernel, the next ones from the runtime's lists.
	var out peer.Line
	out.Tally(peer.Repeat(minMs, round)).Print()
}
