package authapi

// qrCode returns a text as a QR code, an SVG.
func qrCode(string) string { return "" }
