module socle/tools/release

go 1.26.0

toolchain go1.26.11

require github.com/CycloneDX/cyclonedx-go v0.12.0
