// Package faults drives the pipeline through faults, from a posted body to the rows in the
// store, and looks afterwards whether everything the product promises still holds. It has no
// code outside its tests.
//
//	schedule (from a seed) ──▶ webhook ─▶ spool ─▶ stream ──┬─▶ broker ──┬─▶ runner ─▶ storage ──┬─▶ engine
//	                                                      wire faults   wire faults        statement faults
//	                                                                 files, as a kill or a power failure leaves them
//
// Simulated schedules run the product's own code, broker and engine inside a bubble of
// simulated time: an outage of a quarter of an hour takes as long as the work in it. What is
// not ours to simulate, the engine, runs beside the bubble, whose time stands still for as
// long as a statement takes. A schedule is a list of steps and follows from its seed alone;
// where several goroutines race at one instant a repetition may differ in their order.
//
// Real schedules start the product's executable and kill, stop, starve and cut it off.
//
// Mutants are builds of the product with one safeguard taken away. Each must be noticed.
//
//	make faults                               the long set
//	make faults SEED=7 N=1                    one schedule again
//	make faults N=5000                        more of them
//
// docs/reliability.md says what is promised and which of these tests shows it.
package faults
