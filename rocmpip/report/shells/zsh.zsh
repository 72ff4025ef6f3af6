# pip and pip3 are rocmpip in this shell. To load it at every start: eval "$(rocmpip shell-init zsh)" in ~/.zshrc, after compinit
if [[ -z ${_ROCMPIP_BEFORE+kept} ]]; then
  typeset -g _ROCMPIP_BEFORE="$(
    alias -L pip; alias -L pip3
    for _rocmpip_name in pip pip3 rocmpip; do
      [[ -n ${_comps[$_rocmpip_name]-} ]] && print -r -- "compdef ${(q)_comps[$_rocmpip_name]} $_rocmpip_name"
    done 2>/dev/null
    :
  )"
fi
alias pip=@ALIAS@ pip3=@ALIAS@
_rocmpip() {
  local -a found
  found=( ${=$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT - 1)) PIP_AUTO_COMPLETE=1 @COMMAND@ 2>/dev/null)} )
  if (( $#found )); then
    compadd -- $found
  else
    _files
  fi
}
if (( $+functions[compdef] )); then
  compdef _rocmpip rocmpip pip pip3
fi
