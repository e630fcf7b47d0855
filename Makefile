.PHONY: ci
ci:
	bash .ci/run
