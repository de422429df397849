package limit

// Enough is how many file descriptors a server should at least have: with fewer it
// serves, and says so.
const Enough = 1024

// MostConnections are as many connections of clients as are served by default where
// descriptors abound.
const MostConnections = 16384

// Shares is how a process divides its file descriptors. What is left over is the
// process's own: logs, locks, standard streams, and what a moment takes.
type Shares struct {
	Store       int // tables and logs
	Connections int // of clients
	Outgoing    int // connections to endpoints and remote functions
	Functions   int // pipes and sockets of functions' processes
}

// Least and most of the shares.
const (
	ownDescriptors = 48
	minStore       = 96
	maxStore       = 1064
	maxOutgoing    = 8192
	maxFunctions   = 16384
)

// Share divides descriptors; 0 is any number. connections is how many connections of
// clients are asked for; 0: as many as there can be, up to MostConnections. They get
// no more than leaves something for the others.
func Share(descriptors, connections int) Shares {
	if descriptors <= 0 {
		descriptors = 1 << 20
	}
	s := Shares{Store: min(max(descriptors/4, minStore), maxStore)}
	rest := max(descriptors-ownDescriptors-s.Store, 4)
	if connections > 0 {
		s.Connections = min(connections, rest*3/4)
	} else {
		s.Connections = min(rest/2, MostConnections)
	}
	s.Outgoing = min((rest-s.Connections)/2, maxOutgoing)
	s.Functions = min(rest-s.Connections-s.Outgoing, maxFunctions)
	return s
}
