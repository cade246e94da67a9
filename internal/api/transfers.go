package api

func (s *Server) registerTransfers() {
	within(s, exportTable, s.exportTable, nil)
	within(s, importTable, s.importTable, nil)
	within(s, importRows, s.importRows, nil)
}
