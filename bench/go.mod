module libums/bench

go 1.19
