# Boots the guest's root, under an overlay and with the chosen kernel, and has it prove every filesystem that it is
# to serve; what it proved goes into the sealed image, nothing that the boot wrote does.
#
# Written for Packer 1.6.6, where the qemu builder is built in. A newer one (1.7 and later) has it as a plugin:
# "packer plugins install github.com/hashicorp/qemu", once. That was never tried with this template.

variable "python" {
  type        = string
  description = "the interpreter that has agelab"
}

variable "work" {
  type        = string
  description = "directory with boot (kernel), key, scratch.raw, plan.json; console.log and proof.json appear there"
}

variable "initramfs" {
  type        = string
  description = "the kernel's base archive and the one for this boot"
}

variable "root" {
  type        = string
  description = "the squashfs root; mapped privately, so the guest cannot change it"
}

variable "root_size" {
  type        = string
  description = "its size in bytes"
}

variable "scratch_size" {
  type        = string
  description = "size in bytes of scratch.raw, the disk on which the filesystems are made"
}

variable "prover" {
  type        = string
  description = "the program that makes the proof"
}

variable "cmdline" {
  type        = string
  description = "kernel command line"
}

source "qemu" "guest" {
  # The disk that Packer makes is the proof's scratch disk, and is thrown away: the root is not made by booting it.
  iso_url          = "${var.work}/scratch.raw"
  iso_checksum     = "none"
  disk_image       = true
  skip_resize_disk = true
  format           = "raw"
  output_directory = "${var.work}/disk"
  vm_name          = "scratch.raw"

  accelerator = "none" # TCG: works everywhere, and the proof takes seconds
  headless    = true
  disable_vnc = true
  boot_wait   = "-1s"

  # Disks as in a cell: memory-backed, the first the root. The network is for Packer alone; no cell has one.
  qemuargs = [
    ["-machine", "q35,nvdimm=on"],
    ["-accel", "tcg"],
    ["-cpu", "Skylake-Client-v1,-erms"],
    ["-m", "512,slots=3,maxmem=8G"],
    ["-nodefaults", ""],
    ["-display", "none"],
    ["-no-reboot", ""],
    ["-serial", "file:${var.work}/console.log"],
    ["-object", "memory-backend-file,id=root,share=off,mem-path=${var.root},size=${var.root_size}"],
    ["-object", "memory-backend-file,id=scratch,share=on,mem-path=${var.work}/disk/scratch.raw,size=${var.scratch_size}"],
    ["-drive", "if=none,id=unused,driver=null-co"],
    ["-device", "nvdimm,memdev=root,id=nv0"],
    ["-device", "nvdimm,memdev=scratch,id=nv1"],
    ["-netdev", "user,id=user.0,hostfwd=tcp:127.0.0.1:{{ .SSHHostPort }}-:22"],
    ["-device", "virtio-net-pci,netdev=user.0,romfile="],
    ["-kernel", "${var.work}/boot"],
    ["-initrd", "${var.initramfs}"],
    ["-append", "${var.cmdline}"],
  ]

  communicator           = "ssh"
  ssh_username           = "root"
  ssh_private_key_file   = "${var.work}/key"
  ssh_timeout            = "4m"
  ssh_handshake_attempts = 1000
  # Not sftp: dropbear closes an sftp channel twice, and when Packer has opened the next one by then, that ends ("EOF").
  ssh_file_transfer_method = "scp"
  # No shutdown_command: Packer ends the guest, of which nothing is kept.
}

build {
  sources = ["source.qemu.guest"]

  provisioner "file" {
    sources     = [var.prover, "${var.work}/plan.json"]
    destination = "/run/agelab/"
  }

  provisioner "shell" {
    inline = ["python3 /run/agelab/prove.py /run/agelab/plan.json /run/agelab/proof.json"]
  }

  provisioner "file" {
    direction   = "download"
    source      = "/run/agelab/proof.json"
    destination = "${var.work}/proof.json"
  }

  post-processor "shell-local" {
    inline = ["'${var.python}' -m agelab.machine.image.assemble '${var.work}'"]
  }
}
