# Made of the table of RunOptions by make format.
OPTIONS_calibrate := KERNEL FS OPTIONS SEEDS TRACE SCALE CORPUS LOG CORPORA DESIGN DEFAULTS LAYOUT CLOCK DISKS ERASE BOOT VCPUS SCHEDULE MACHINE MACHINE_BAND BLOCK SOURCE INSTEAD JOBS
ASKED_calibrate = \
  $${KERNEL:+--kernel "$$KERNEL$(PATCHED)"} \
  $${FS:+--filesystem "$$FS"} \
  $${OPTIONS:+--options "$$OPTIONS"} \
  $${SEEDS:+--seeds "$$SEEDS"} \
  $${TRACE:+--trace} \
  $${SCALE:+--scale "$$SCALE"} \
  $${CORPUS:+--corpus "$$CORPUS"} \
  $${LOG:+--log "$$LOG"} \
  $${CORPORA:+--corpora "$$CORPORA"} \
  $${DESIGN:+--design "$$DESIGN"} \
  $${DEFAULTS:+--defaults "$$DEFAULTS"} \
  $${LAYOUT:+--layout "$$LAYOUT"} \
  $${CLOCK:+--clock "$$CLOCK"} \
  $${DISKS:+--disks "$$DISKS"} \
  $${ERASE:+--erase "$$ERASE"} \
  $${BOOT:+--boot "$$BOOT"} \
  $${VCPUS:+--vcpus "$$VCPUS"} \
  $${SCHEDULE:+--schedule "$$SCHEDULE"} \
  $${MACHINE:+--machine "$$MACHINE"} \
  $${MACHINE_BAND:+--machine-band "$$MACHINE_BAND"} \
  $${BLOCK:+--block "$$BLOCK"} \
  $${SOURCE:+--source "$$SOURCE"} \
  $${INSTEAD:+--instead "$$INSTEAD"} \
  $${JOBS:+--jobs "$$JOBS"} \

OPTIONS_sweep := $(OPTIONS_calibrate) FRESH VERIFY
ASKED_sweep = $(ASKED_calibrate) \
  $${FRESH:+--fresh} \
  $${VERIFY:+--verify "$$VERIFY"} \

OPTIONS_run := $(OPTIONS_sweep) FAIL ASK BUDGET DISK KEEP_DISK CURVE TIMING BLOCKS PROFILE CHECK
ASKED_run = $(ASKED_sweep) \
  $${FAIL:+--fail "$$FAIL"} \
  $${ASK:+--ask "$$ASK"} \
  $${BUDGET:+--budget "$$BUDGET"} \
  $${DISK:+--disk "$$DISK"} \
  $${KEEP_DISK:+--keep-disk} \
  $${CURVE:+--curve} \
  $${TIMING:+--timing} \
  $${BLOCKS:+--blocks} \
  $${PROFILE:+--profile} \
  $${CHECK:+--check} \
