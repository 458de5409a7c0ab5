# To be sourced by a batch job's shell, or by a module: traces all that is started from here on, and never fails.
# Not here: what is traced, and how (ioweir env).
ioweir_job=${SLURM_JOB_ID:-${PBS_JOBID:-${LSB_JOBID:-${FLUX_JOB_ID:-${COBALT_JOBID:-}}}}}
# A job that another job has submitted inherits that one's variables, but gets a trace of its own.
if [ -n "${IOWEIR_SITE_JOB:-}" ] && [ "$IOWEIR_SITE_JOB" != "$ioweir_job" ]; then
    unset IOWEIR_DIR
fi
if [ -n "$ioweir_job" ] && [ -z "${IOWEIR_DIR:-}" ] && [ "${IOWEIR_DISABLE:-0}" = 0 ]; then
    ioweir_traces=${IOWEIR_SITE_TRACES:-${SCRATCH:-$HOME}/ioweir-traces}
    ioweir_trace=$ioweir_traces/$ioweir_job-$(date +%Y%m%dT%H%M%S)-$$
    # Split into words on purpose: several options.
    # shellcheck disable=SC2086
    if ioweir_said=$(umask 077 && mkdir -p "$ioweir_traces" \
        && { [ -z "${IOWEIR_SITE_GROUP:-}" ] \
            || { chgrp "$IOWEIR_SITE_GROUP" "$ioweir_traces" && chmod 2750 "$ioweir_traces"; }; } \
        && "@PREFIX@/bin/ioweir" env -o "$ioweir_trace" ${IOWEIR_SITE_GROUP:+--group "$IOWEIR_SITE_GROUP"} \
            ${IOWEIR_SITE_OPTIONS---quota 1GiB}); then
        eval "$ioweir_said"
        export IOWEIR_SITE_JOB="$ioweir_job"
    else
        echo "ioweir: this job is not traced" >&2
    fi
fi
unset ioweir_job ioweir_traces ioweir_trace ioweir_said
