// SPDX-License-Identifier: MIT

// condvar: sync.Cond with sync.Mutex. The workload is that of bench/condvar/rounds.hpp.
package main

import (
	"sync"

	peer "libums/bench/common/go"
)

const trips = 10_000

func rally() peer.Tally {
	var lock sync.Mutex
	turned := sync.NewCond(&lock)
	turn := 0
	play := func(me int) {
		lock.Lock()
		defer lock.Unlock()
		for i := 0; i < trips; i++ {
			for turn != me {
				turned.Wait()
			}
			turn = 1 - me
			turned.Signal()
		}
	}
	var other sync.WaitGroup
	other.Add(1)
	go func() {
		defer other.Done()
		play(1)
	}()
	begin := peer.NowNs()
	play(0)
	other.Wait()
	return peer.Tally{Ops: trips, Ns: peer.NowNs() - begin}
}

func rounds(waiters int) peer.Tally {
	all := 20_000/waiters + 1
	var lock sync.Mutex
	begun := sync.NewCond(&lock)
	complete := sync.NewCond(&lock)
	waiting, round := 0, 0

	var runners sync.WaitGroup
	runners.Add(waiters)
	for i := 0; i < waiters; i++ {
		go func() {
			defer runners.Done()
			lock.Lock()
			defer lock.Unlock()
			for round < all {
				mine := round
				waiting++
				if waiting == waiters {
					complete.Signal()
				}
				for round == mine {
					begun.Wait()
				}
			}
		}()
	}

	begin := int64(0)
	lock.Lock()
	for round < all {
		for waiting != waiters {
			complete.Wait()
		}
		if round == 0 {
			begin = peer.NowNs()
		}
		waiting = 0
		round++
		begun.Broadcast()
	}
	lock.Unlock()
	runners.Wait()
	return peer.Tally{Ops: int64(all * waiters), Ns: peer.NowNs() - begin}
}

func main() {
	in := peer.Arguments()
	all := in.Word("way", "round_trip", "notify_all") == "notify_all"
	in.Number("processors", 1, 1, 1024)
	fallback, least, most := 2, 2, 2
	if all {
		fallback, least, most = 100, 1, peer.Most
	}
	goroutines := in.Number("fibers", fallback, least, most)
	minMs := in.Number("min_ms", 100, 0, peer.Most)
	in.Done()

	round := rally
	if all {
		round = func() peer.Tally { return rounds(goroutines) }
	}
	var out peer.Line
	out.Tally(peer.Repeat(minMs, round)).Print()
}
