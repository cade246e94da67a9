package main

// becomeSandbox does nothing: there is no server for Windows.
func becomeSandbox() {}
