# pip and pip3 are what they were before `rocmpip shell-init zsh`.
if [[ -n ${_ROCMPIP_BEFORE+kept} ]]; then
  unalias pip pip3 2>/dev/null || :
  if (( $+functions[compdef] )); then
    compdef -d rocmpip pip pip3
  fi
  unfunction _rocmpip
  eval "$_ROCMPIP_BEFORE"
  unset _ROCMPIP_BEFORE
fi
