//go:build !windows

package main

import "github.com/socle-dev/socle/internal/function/sandbox"

// becomeSandbox does not return if this process was started to become a sandbox of functions.
func becomeSandbox() { sandbox.Init() }
