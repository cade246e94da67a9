// Each attempt throws, or returns what it reached. The test passes if nothing was reached.
const attempts = {
  async passwords() { return await Deno.readTextFile("/etc/passwd"); },
  async serversFiles() { return await Deno.readTextFile(Deno.env.get("OUTSIDE")); },
  async rootOfProcess() { return await Deno.readTextFile("/proc/1/root/etc/hostname"); },
  async otherProcesses() {
    const names = [...Deno.readDirSync("/proc")].map((e) => e.name).filter((n) => /^\d+$/.test(n));
    if (names.length === 1) throw new Error("alone");
    return names;
  },
  async environment() {
    const text = await Deno.readTextFile("/proc/self/environ");
    if (!/(^|\0)(PATH|GOMAXPROCS)=/.test(text)) throw new Error("nothing of the server");
    return text;
  },
  async kernelSettings() { return await Deno.readTextFile("/proc/sys/kernel/hostname"); },
  async serversPort() { return await connect("127.0.0.1", Number(Deno.env.get("PORT"))); },
  async serversPort6() { return await connect("::1", Number(Deno.env.get("PORT"))); },
  async metadata() { return await connect("169.254.169.254", 80); },
  async privateNetwork() { return await connect("10.0.0.1", 80); },
  async internet() { return await connect("1.1.1.1", 443); },
  async abstractSocket() { return await connectUnix("\0" + Deno.env.get("ABSTRACT")); },
  async socketByPath() { return await connectUnix("/var/run/docker.sock"); },
  async shell() { return (await new Deno.Command("/bin/sh").output()).code; },
  async itself() { return (await new Deno.Command("/program", { args: ["--version"] }).output()).code; },
  async fork() { return call(NR.clone, 17, 0, 0, 0, 0); },
  async cloneNamespace() { return call(NR.clone, 0x10000000 | 17, 0, 0, 0, 0); },
  async clone3() { return call(NR.clone3, 0, 0, 0, 0, 0); },
  async unshare() { return call(NR.unshare, 0x10000000, 0, 0, 0, 0); },
  async setns() { return call(NR.setns, 0, 0, 0, 0, 0); },
  async mount() { return call(NR.mount, 0, 0, 0, 0, 0); },
  async ptrace() { return call(NR.ptrace, 0, 0, 0, 0, 0); },
  async bpf() { return call(NR.bpf, 0, 0, 0, 0, 0); },
  async keyring() { return call(NR.keyctl, 0, 0, 0, 0, 0); },
  async ring() { return call(NR.io_uring_setup, 8, 0, 0, 0, 0); },
  async faults() { return call(NR.userfaultfd, 0, 0, 0, 0, 0); },
  async performance() { return call(NR.perf_event_open, 0, 0, 0, 0, 0); },
  async memoryFile() { return call(NR.memfd_create, 0, 0, 0, 0, 0); },
  async vsock() { return call(NR.socket, 40, 1, 0, 0, 0); },
  async netlink() { return call(NR.socket, 16, 3, 0, 0, 0); },
  async surviveTheServer() { return call(NR.prctl, 1, 0, 0, 0, 0); },
  async uncountedMemory() { return call(NR.mmap, 0, 4096, 3, 0x21, -1); },
  async higherPriority() { return call(NR.setpriority, 0, 0, -20, 0, 0); },
  async higherLimit() { return await Promise.reject(new Error(call(NR.setrlimit, 7, 0, 0, 0, 0))); },
  async writeProgram() { return await Deno.writeTextFile("/program", "x"); },
  async writeItself() { return await Deno.writeTextFile("/rt/main.js", "x"); },
  async writeRoot() { return await Deno.writeTextFile("/file", "x"); },
  async manyFiles() {
    const all = [];
    for (let i = 0; i < 2000; i++) all.push(Deno.openSync("/rt/main.js"));
    return all.length;
  },
  async fullDisk() {
    const piece = new Uint8Array(1 << 20);
    for (let i = 0; i < 64; i++) Deno.writeFileSync("/tmp/" + i, piece);
    return "64 MB";
  },
  async manyNodes() {
    for (let i = 0; i < 20000; i++) Deno.writeFileSync("/tmp/n" + i, new Uint8Array());
    return "20,000 files";
  },
};

const NR = Deno.build.arch === "x86_64"
  ? { clone: 56, clone3: 435, unshare: 272, setns: 308, mount: 165, ptrace: 101, bpf: 321, keyctl: 250,
    io_uring_setup: 425, userfaultfd: 323, perf_event_open: 298, memfd_create: 319, socket: 41, prctl: 157, mmap: 9,
    setpriority: 141, setrlimit: 160 }
  : { clone: 220, clone3: 435, unshare: 97, setns: 268, mount: 40, ptrace: 117, bpf: 280, keyctl: 219,
    io_uring_setup: 425, userfaultfd: 282, perf_event_open: 241, memfd_create: 279, socket: 198, prctl: 167, mmap: 222,
    setpriority: 140, setrlimit: 164 };

let libc;
function call(number, ...args) {
  libc ??= Deno.dlopen("/lib/libc.so.6", {
    syscall: { parameters: ["i64", "i64", "i64", "i64", "i64", "i64", "i64"], result: "i64" },
  });
  const result = libc.symbols.syscall(BigInt(number), ...args.map(BigInt), 0n);
  if (result === -1n) throw new Error("refused by the kernel");
  return String(result);
}

async function connect(hostname, port) {
  const conn = await Deno.connect({ hostname, port });
  conn.close();
  return `${hostname}:${port}`;
}

async function connectUnix(path) {
  const conn = await Deno.connect({ transport: "unix", path });
  conn.close();
  return path;
}

for (const [name, attempt] of Object.entries(attempts)) {
  let outcome;
  try {
    outcome = { reached: String(await attempt()) };
  } catch (e) {
    outcome = { refused: String(e) };
  }
  console.log(JSON.stringify({ name, ...outcome }));
}
console.log(JSON.stringify({ name: "end", refused: "all attempts were made" }));
