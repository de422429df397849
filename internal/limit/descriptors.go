package limit

// Enough is the recommended minimum of file descriptors: with fewer a server runs, and warns.
const Enough = 1024

// mostConnections is the default bound of clients' connections when there are many descriptors.
const mostConnections = 16384

// Shares is the division of a process's file descriptors. The rest is for the process itself:
// logs, locks, standard streams, and short-lived files.
type Shares struct {
	Store       int // tables and logs
	Connections int // of clients
	Outgoing    int // connections to endpoints and remote functions
	Functions   int // pipes and sockets of functions' processes
}

// Minimum and maximum of the shares.
const (
	ownDescriptors = 48
	minStore       = 96
	maxStore       = 1064
	maxOutgoing    = 8192
	maxFunctions   = 16384
)

// Share divides descriptors; 0 means no limit. connections is the requested number of clients'
// connections; 0: as many as possible, up to mostConnections. The others always get a share. Of
// nodes in a cluster any may have to answer the clients of all of them, each over a connection.
func Share(descriptors, connections, nodes int) Shares {
	if descriptors <= 0 {
		descriptors = 1 << 20
	}
	s := Shares{Store: min(max(descriptors/4, minStore), maxStore)}
	rest := max(descriptors-ownDescriptors-s.Store, 4)
	nodes = max(nodes, 1)
	if connections > 0 {
		s.Connections = max(min(connections, rest*3/4/nodes), 1)
	} else {
		s.Connections = max(min(rest/2/nodes, mostConnections), 1)
	}
	left := rest - s.Connections*nodes
	s.Outgoing = min(left/2, maxOutgoing)
	s.Functions = min(left-s.Outgoing, maxFunctions)
	return s
}

// Clients is how many connections of clients there may be once there are other nodes, as Share has
// it. What Share gave to outgoing connections and to functions stays theirs.
func (s Shares) Clients(descriptors, connections, nodes int) int {
	if descriptors <= 0 {
		descriptors = 1 << 20
	}
	left := descriptors - ownDescriptors - s.Store - s.Outgoing - s.Functions
	return max(min(Share(descriptors, connections, nodes).Connections, left/max(nodes, 1)), 1)
}
