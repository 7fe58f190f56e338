"""The peer of several benches: Slurm's acct_gather_profile/hdf5, on a lab cluster."""


# Options of srun under which it writes a sample of each task every second.
HDF5_OPTIONS = ("--profile=task", "--acctg-freq=task=1")
_CONF = ("AcctGatherProfileType=acct_gather_profile/hdf5", "JobAcctGatherFrequency=1")


def hdf5_profile(lab):
    """Turns the plugin on for all nodes of a lab that is up. Returns the folder of its files."""
    folder = lab.dir / "hdf5"
    folder.mkdir(exist_ok=True)
    (lab.slurm_conf.parent / "acct_gather.conf").write_text(f"ProfileHDF5Dir={folder}\n")
    lab.set_conf(*_CONF)
    lab.slurmctld_restart()
    for node in lab.nodes:
        lab.slurmd_restart(node)
    return folder
