// Package deploy holds the files that install Retrial and connect clusters to it; its tests
// parse every one of them strictly.
package deploy
