// SPDX-License-Identifier: MIT

package peer

import "sync"

// RunCrew runs work(0) to work(runners - 1), each on a goroutine of its own, and returns the ns from the start
// of all to the end of the last; see bench/common/crew.hpp.
func RunCrew(runners int, work func(int)) int64 {
	race := NewRace(runners)
	var all sync.WaitGroup
	all.Add(runners)
	for i := 0; i < runners; i++ {
		go func(i int) {
			defer all.Done()
			race.Start()
			work(i)
			race.Finish()
		}(i)
	}
	race.Open()
	all.Wait()
	return race.Ns()
}
