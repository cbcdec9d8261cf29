// Package deduptest holds what every implementation of dedup.Store has to pass: [Exercise] for the rules,
// [Simulate] for long random histories.
package deduptest
