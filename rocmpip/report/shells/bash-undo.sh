# pip and pip3 are what they were before `rocmpip shell-init bash`.
if [ -n "${_ROCMPIP_BEFORE+kept}" ]; then
  unalias pip pip3 2>/dev/null || :
  complete -r rocmpip pip pip3 2>/dev/null || :
  unset -f _rocmpip_complete
  eval "$_ROCMPIP_BEFORE"
  unset _ROCMPIP_BEFORE
fi
