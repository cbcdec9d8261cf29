// Package demo is the demonstration that the gate comes with, and its first experiment: a real gate process in
// front of a real app with a real SQLite file, a sender that signs, repeats, forges, hangs up and tries again,
// and an observer that reads the effects from the file and believes neither of them.
//
// Each step of the story is judged by named conditions. The steps stand in story_*.go; [Command] runs them for
// people and programs, [Run] for tests.
package demo
