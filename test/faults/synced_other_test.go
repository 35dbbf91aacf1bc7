//go:build !linux

package faults

// watchEnv is not used here: real schedules need Linux.
const watchEnv = "RETRIAL_FAULTS_WATCHED"

func watchedExec() {}
