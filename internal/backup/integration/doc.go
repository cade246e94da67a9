// Package integration tests package backup in a running server. In the folder of package backup,
// which has tests of its unexported code, these tests would have go test compile everything between
// backup and apitest twice.
package integration
