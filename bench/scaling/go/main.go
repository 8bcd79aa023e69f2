// SPDX-License-Identifier: MIT

// scaling, way=wake: the main goroutine wakes all N blocked goroutines, each through a channel of its own, and each
// blocks again. One operation is one wake-up. (way=yield is the yield workload's peer.)
package main

import (
	"runtime"
	"sync"
	"sync/atomic"

	peer "libums/bench/common/go"
)

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 1000, 1, peer.Most)
	minMs := in.Number("min_ms", 30, 0, peer.Most)
	in.Done()

	// A buffered channel: the wake-up never blocks the one who wakes.
	wake := make([]chan struct{}, goroutines)
	var left int64 = int64(goroutines)
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := range wake {
		wake[i] = make(chan struct{}, 1)
		go func(wake chan struct{}) {
			defer all.Done()
			atomic.AddInt64(&left, -1)
			for range wake {
				atomic.AddInt64(&left, -1)
			}
		}(wake[i])
	}
	wait := func() {
		for atomic.LoadInt64(&left) != 0 {
			runtime.Gosched()
		}
	}
	wait()
	sum := peer.Repeat(minMs, func() peer.Tally {
		begin := peer.NowNs()
		atomic.StoreInt64(&left, int64(goroutines))
		for _, one := range wake {
			one <- struct{}{}
		}
		wait()
		return peer.Tally{Ops: int64(goroutines), Ns: peer.NowNs() - begin}
	})
	for _, one := range wake {
		close(one)
	}
	all.Wait()
	var out peer.Line
	out.Tally(sum).Print()
}
