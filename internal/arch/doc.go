// Package arch holds no code: its tests keep the rooms of the repository apart, and print
// the reason with every rule that is broken.
package arch
